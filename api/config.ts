/** Settings of the API process. Together with db/config.ts and workers/config.ts the only reader of process.env. */
import { type InferType, object, string } from 'yup'
import { readSettings, sharedSettings, wholeNumber } from '../db/config.ts'

const apiSettings = object({
  ...sharedSettings,
  PORT: wholeNumber(0, 65_535).default(3000),
  /** The address that clients and recipients reach this service at; links in answers and emails begin with it. */
  PUBLIC_URL: string()
    .matches(/^https?:\/\//, '${path} must be an http(s) URL')
    .optional(),
})

export type ApiSettings = Readonly<InferType<typeof apiSettings>>

/** @throws SettingsFault naming every variable that is missing or malformed. */
export const readApiSettings = (env?: NodeJS.ProcessEnv): ApiSettings => readSettings(apiSettings, env)
