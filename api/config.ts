/** Settings of the API process. Together with db/config.ts and workers/config.ts the only reader of process.env. */
import { type InferType, object, string } from 'yup'
import { commaList, readSettings, sharedSettings, wholeNumber } from '../db/process/config.ts'
import { TOPIC_ARN } from './hooks/sns-envelope.ts'
import type { HookSettings } from './route.ts'

const apiSettings = object({
  ...sharedSettings,
  PORT: wholeNumber(0, 65_535).default(3000),
  /** The bearer token of GET /metrics and GET /scale; without it there are no such paths. */
  METRICS_TOKEN: string(),
  /** The token in GET /hirefire/TOKEN/info; without it there is no such path. */
  HIREFIRE_TOKEN: string().matches(/^[\w-]{16,}$/, '${path} must be 16 letters, digits, - and _, or more'),
  /** The bearer token that a mail server posts its reports with; without it POST /hooks/smtp takes none. */
  SMTP_REPORT_TOKEN: string(),
  /** The SNS topics that SES publishes to, separated by commas; without them POST /hooks/ses takes nothing. */
  SNS_TOPIC_ARNS: string().test(
    'topics',
    '${path} must be the ARNs of SNS topics, separated by commas',
    (value) => commaList(value).every((arn) => TOPIC_ARN.test(arn)),
  ),
  /** What the provider signs its reports with; without it POST /hooks/whatsapp takes none. */
  WHATSAPP_APP_SECRET: string(),
  /** What the provider repeats in its handshake; without it GET /hooks/whatsapp answers none. */
  WHATSAPP_VERIFY_TOKEN: string(),
})

export type ApiSettings = Readonly<InferType<typeof apiSettings>>

/** @throws SettingsFault naming every variable that is missing or malformed. */
export const readApiSettings = (env?: NodeJS.ProcessEnv): ApiSettings => readSettings(apiSettings, env)

/** What the hooks need of the settings. */
export const hookSettings = (settings: ApiSettings): HookSettings => ({
  smtp_report_token: settings.SMTP_REPORT_TOKEN ?? null,
  whatsapp_app_secret: settings.WHATSAPP_APP_SECRET ?? null,
  whatsapp_verify_token: settings.WHATSAPP_VERIFY_TOKEN ?? null,
})

/** The topics of SNS_TOPIC_ARNS. */
export const snsTopics = ({ SNS_TOPIC_ARNS }: ApiSettings): string[] => commaList(SNS_TOPIC_ARNS)
