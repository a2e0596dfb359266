/** The settings of the API process. Only this module, db/process/config.ts and workers/config.ts read process.env. */
import { type InferType, object, string } from 'yup'
import {
  bearerToken,
  commaList,
  defaultPlan,
  dnsServer,
  givenSecret,
  graphApiSettings,
  httpUrl,
  misspeltSettings,
  networkList,
  ownMailbox,
  publicUrl,
  readSettings,
  replicaUrl,
  returnPathDomain,
  settingsOf,
  sharedSettings,
  wholeNumber,
} from '../db/process/config.ts'
import { type Network, networksIn } from '../db/process/public-address.ts'
import { domainToAscii } from '../db/validation/address.ts'
import { HEADER_TOKEN, type Reserved } from '../db/validation/headers.ts'
import { RELAY_HEADERS } from '../db/validation/relays.ts'
import type { OpenIdSettings } from './dashboard/server/openid.ts'
import { HOOKS } from './hooks/list.ts'
import type { AttachmentLimits } from './v1/attached.ts'

/** Extensions of programs, scripts and links, which mail servers commonly reject. */
const BLOCKED =
  'ade,adp,app,asp,bas,bat,cer,chm,cmd,com,cpl,crt,csh,der,exe,fxp,gadget,hlp,hta,inf,ins,isp,its,js,jse,ksh,lib,lnk,' +
  'mad,maf,mag,mam,maq,mar,mas,mat,mau,mav,maw,mda,mdb,mde,mdt,mdw,mdz,msc,msh,msh1,msh2,mshxml,msh1xml,msh2xml,msi,' +
  'msp,mst,ops,pcd,pif,plg,prf,prg,ps1,ps1xml,ps2,ps2xml,psc1,psc2,reg,scf,scr,sct,shb,shs,sys,tmp,url,vb,vbe,vbs,vps,' +
  'vsmacros,vss,vst,vsw,vxd,ws,wsc,wsf,wsh,xnk'

const apiSettings = object({
  ...sharedSettings,
  /** A standby of the same database, for reads that can be slightly out of date. */
  DATABASE_REPLICA_URL: replicaUrl,
  PORT: wholeNumber(0, 65_535).default(3000),
  /** The address to listen on. The default is all addresses of the machine. */
  HOST: string(),
  /** The bearer token of GET /metrics and GET /scale. Without it these paths don't exist. */
  METRICS_TOKEN: bearerToken,
  /** The token in GET /hirefire/TOKEN/info. Without it this path doesn't exist. */
  HIREFIRE_TOKEN: string().matches(
    /^[\w-]{16,}$/,
    '${path} must be at least 16 characters: letters, digits, - and _',
  ),
  ...settingsOf(HOOKS),
  ...graphApiSettings,
  /** Prefixes of custom headers to reject, in addition to the reserved ones: those that the relay interprets. */
  RESERVED_HEADER_PREFIXES: string().test(
    'prefixes',
    '${path} must be header prefixes, separated by commas, such as X-SMTPAPI,X-MC-',
    (value) => commaList(value).every((prefix) => HEADER_TOKEN.test(prefix)),
  ),
  /** The maximum size of an encoded message, with its attachments if there are any, in MiB. */
  MAX_MESSAGE_MB: wholeNumber(1, 50).default(25),
  /** The domain that the examples of /docs send from. */
  DOCS_DOMAIN: string()
    .test(
      'domain',
      '${path} must be a domain, such as example.com',
      (value) => value === undefined || domainToAscii(value) !== null,
    )
    .default('example.com'),
  /** File extensions that attachments can't have, separated by commas. Replaces the default list. `none` allows all. */
  BLOCKED_EXTENSIONS: string()
    .test(
      'extensions',
      '${path} must be none, or file extensions separated by commas, such as exe,js',
      (value) => commaList(value).every((ending) => /^\.?\w{1,20}$/.test(ending)),
    )
    .default(BLOCKED),
  DEFAULT_PLAN: defaultPlan,
  /** `off` disables the dashboard in this process. */
  DASHBOARD: string().oneOf(['on', 'off'], '${path} must be on or off').default('on'),
  /** The address of this service for users and recipients. */
  PUBLIC_URL: publicUrl,
  /** The sender of sign-in emails. A team must have verified its domain. */
  DASHBOARD_FROM: ownMailbox,
  /** The OpenID provider for sign-ins, and our client ID and secret. All three or none. */
  OIDC_ISSUER: httpUrl,
  OIDC_CLIENT_ID: givenSecret,
  OIDC_CLIENT_SECRET: givenSecret,
  /** `on` disables sign-in links by email. Users sign in with the provider, or with a link from the CLI. */
  OIDC_ONLY: string().oneOf(['on', 'off'], '${path} must be on or off').default('off'),
  /** A DNS server for the dashboard's checks of domains, instead of the system's. */
  DNS_SERVER: dnsServer,
  /** The domain that bounces return to, as in the workers' settings. The dashboard shows its DNS records. */
  RETURN_PATH_DOMAIN: returnPathDomain,
  /** Private networks that webhooks can reach, also over http. The dashboard checks the URLs of webhooks. */
  WEBHOOK_ALLOW: networkList,
})
  .test('hooks', (settings, { createError }) => {
    for (const hook of HOOKS) {
      const fault = 'fault' in hook ? hook.fault(settings) : null
      if (fault) return createError(fault)
    }
    return true
  })
  .test('openid', (settings, { createError }) => {
    const { OIDC_ISSUER, OIDC_CLIENT_ID, OIDC_CLIENT_SECRET, PUBLIC_URL, DASHBOARD_FROM, OIDC_ONLY } =
      settings
    const openid = [OIDC_ISSUER, OIDC_CLIENT_ID, OIDC_CLIENT_SECRET].filter((value) => value !== undefined)
    if (openid.length > 0 && openid.length < 3) {
      const message = 'OIDC_ISSUER, OIDC_CLIENT_ID and OIDC_CLIENT_SECRET must be set together'
      return createError({ path: 'OIDC_ISSUER', message })
    }
    if (OIDC_ONLY === 'on' && openid.length === 0) {
      const message = 'OIDC_ISSUER is not set, but OIDC_ONLY is on. No one could sign in'
      return createError({ path: 'OIDC_ISSUER', message })
    }
    if (PUBLIC_URL !== undefined || (openid.length === 0 && DASHBOARD_FROM === undefined)) return true
    const message = 'PUBLIC_URL is not set, but sign-in by email or OpenID needs it'
    return createError({ path: 'PUBLIC_URL', message })
  })

export type ApiSettings = Readonly<InferType<typeof apiSettings>>

/** @throws SettingsFault naming every variable that is missing or malformed. */
export const readApiSettings = (env?: NodeJS.ProcessEnv): ApiSettings => readSettings(apiSettings, env)

const LOOPBACK_URL = /^http:\/\/(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:|\/|$)/i

/** Returns warnings about settings that are allowed but usually wrong. */
export function settingsWarnings({ PUBLIC_URL }: ApiSettings, env?: NodeJS.ProcessEnv): string[] {
  const inTheClear = PUBLIC_URL !== undefined && /^http:/i.test(PUBLIC_URL) && !LOOPBACK_URL.test(PUBLIC_URL)
  const warning =
    'PUBLIC_URL is not an https:// URL: sign-in links and sessions are sent unencrypted, and email clients ignore one-click unsubscribe'
  return [...(inTheClear ? [warning] : []), ...misspeltSettings(apiSettings, env)]
}

// Settings without a default that enable something. Their values may not be shown.
const SWITCHES = [
  'DATABASE_REPLICA_URL',
  'PUBLIC_URL',
  ...HOOKS.map(({ switched_by }) => switched_by),
  'METRICS_TOKEN',
  'HIREFIRE_TOKEN',
  'DASHBOARD_FROM',
  'OIDC_ISSUER',
] as const

/** Returns which optional settings this process has, without their values. */
export const listSwitches = (settings: ApiSettings): { name: string; isSet: boolean }[] =>
  SWITCHES.map((name) => ({ name, isSet: settings[name] !== undefined }))

export function openIdSettings(settings: ApiSettings): OpenIdSettings | null {
  const { OIDC_ISSUER: issuer, OIDC_CLIENT_ID: clientId, OIDC_CLIENT_SECRET: clientSecret } = settings
  if (!issuer || !clientId || !clientSecret) return null
  return { issuer, clientId, clientSecret, only: settings.OIDC_ONLY === 'on' }
}

export const attachmentLimits = ({ MAX_MESSAGE_MB, BLOCKED_EXTENSIONS }: ApiSettings): AttachmentLimits => ({
  message_bytes: MAX_MESSAGE_MB * 1024 * 1024,
  blocked_extensions: new Set(
    BLOCKED_EXTENSIONS === 'none'
      ? []
      : commaList(BLOCKED_EXTENSIONS).map((ending) => ending.replace(/^\./, '').toLowerCase()),
  ),
})

/** Returns the prefixes in RESERVED_HEADER_PREFIXES, and the header in which the relay returns our references. */
export const reservedHeaders = ({ RESERVED_HEADER_PREFIXES, SMTP_RELAY }: ApiSettings): Reserved => ({
  prefixes: commaList(RESERVED_HEADER_PREFIXES),
  names: SMTP_RELAY ? [RELAY_HEADERS[SMTP_RELAY]] : [],
})

export const webhookNetworks = ({ WEBHOOK_ALLOW }: ApiSettings): Network[] =>
  networksIn(commaList(WEBHOOK_ALLOW))
