/** The hooks of providers. To add one, add a file here and a line to the list. */
import type { All } from '../../db/process/config.ts'
import type { HookDeps } from './hook.ts'
import { RELAY_HOOK } from './relay.ts'
import { SES_HOOK } from './ses.ts'
import { SMTP_HOOK } from './smtp.ts'
import { WHATSAPP_HOOK } from './whatsapp.ts'

export const HOOKS = [SMTP_HOOK, RELAY_HOOK, SES_HOOK, WHATSAPP_HOOK] as const

type OpenHooks = All<ReturnType<(typeof HOOKS)[number]['open']>>
export type AllHookDeps = HookDeps<OpenHooks>

type HookSettings = All<Parameters<(typeof HOOKS)[number]['open']>[0]>

export const openHooks = (settings: HookSettings): OpenHooks =>
  Object.assign({}, ...HOOKS.map(({ open }) => open(settings)))
