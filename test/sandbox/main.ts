/**
 * Runs the sandbox process of `npm start`, which simulates the providers, each in a separate file. It prints
 * one line on stdout once everything listens. SIGTERM or SIGINT closes it with exit code 0. A startup error
 * is one line on stderr and exit code 1. Ports come from SANDBOX_SMTP_PORT, SANDBOX_HTTP_PORT and
 * SANDBOX_WHATSAPP_PORT (0 picks a free one). WhatsApp webhooks go to SANDBOX_WHATSAPP_WEBHOOK, signed with
 * WHATSAPP_APP_SECRET. With SANDBOX_REPORT_URL and SMTP_REPORT_TOKEN it reports on the magic recipients to
 * that hook as a mail server. With SMTP_RELAY=mailgun, SMTP_RELAY_SECRET and SANDBOX_RELAY_URL it reports as
 * that relay instead. SANDBOX_DATA is a directory for received messages, and SANDBOX_DASHBOARD is the
 * dashboard that messages link to.
 */
import { join } from 'node:path'
import { startInbox } from './inbox.ts'
import { type Keep, keepIn, keepNothing } from './keep.ts'
import { createMailgunReporter } from './relay.ts'
import { createReporter } from './reports.ts'
import { type SandboxOptions, startSmtpSandbox } from './smtp.ts'
import { startWhatsappSandbox, type WhatsappSandbox } from './whatsapp.ts'
import { DEMO_TEMPLATE, demoAccounts, magicNumbers } from './whatsapp-magic.ts'

type Stoppable = { close(): Promise<void> }

const DEFAULT_SMTP_PORT = 2525
const DEFAULT_HTTP_PORT = 8025
const DEFAULT_WHATSAPP_PORT = 8026

function portFrom(name: string, fallback: number): number {
  const given = process.env[name] ?? ''
  const port = given === '' ? fallback : Number(given)
  if (!Number.isInteger(port) || port < 0 || port > 65_535) throw new Error(`${name} must be a port number`)
  return port
}

const keep = async (what: string): Promise<Keep> => {
  const { SANDBOX_DATA: directory = '' } = process.env
  return directory === '' ? keepNothing : keepIn(join(directory, what))
}

async function startCloudApi(): Promise<WhatsappSandbox> {
  const { SANDBOX_WHATSAPP_WEBHOOK: url, WHATSAPP_APP_SECRET: app_secret } = process.env
  const { WHATSAPP_ACCESS_TOKEN: token = 'sandbox' } = process.env
  return startWhatsappSandbox({
    port: portFrom('SANDBOX_WHATSAPP_PORT', DEFAULT_WHATSAPP_PORT),
    script: magicNumbers(),
    webhook: url && app_secret ? { url, app_secret } : undefined,
    accounts: demoAccounts(token),
    keep: await keep('whatsapp'),
  })
}

const warn = (line: string): void => void process.stderr.write(`sandbox: ${line}\n`)

/** Returns the reporter for the magic recipients, if one is configured. */
function reporter(): Pick<SandboxOptions, 'onAccepted'> {
  const { SMTP_RELAY, SMTP_RELAY_SECRET: secret = '', SANDBOX_RELAY_URL: relay = '' } = process.env
  if (SMTP_RELAY === 'mailgun' && relay !== '')
    return { onAccepted: createMailgunReporter({ url: relay, secret, warn }) }
  const { SANDBOX_REPORT_URL: url = '', SMTP_REPORT_TOKEN: token = '' } = process.env
  return url === '' ? {} : { onAccepted: createReporter({ url, token, warn }) }
}

async function start(running: Stoppable[]): Promise<string> {
  const sandbox = await startSmtpSandbox({
    port: portFrom('SANDBOX_SMTP_PORT', DEFAULT_SMTP_PORT),
    keep: await keep('mail'),
    ...reporter(),
  })
  running.push(sandbox)
  const whatsapp = await startCloudApi()
  running.push(whatsapp)
  const inbox = await startInbox({
    port: portFrom('SANDBOX_HTTP_PORT', DEFAULT_HTTP_PORT),
    sandbox,
    whatsapp,
    templates: [DEMO_TEMPLATE],
    dashboard: process.env.SANDBOX_DASHBOARD || null,
  })
  running.push(inbox)
  return `sandbox ready: smtp://127.0.0.1:${sandbox.port} http://127.0.0.1:${inbox.port} ${whatsapp.url}`
}

async function main(): Promise<void> {
  const running: Stoppable[] = []
  const stop = async (exit_code: number): Promise<void> => {
    await Promise.all(running.map((part) => part.close()))
    process.exit(exit_code)
  }
  process.once('SIGTERM', () => stop(0))
  process.once('SIGINT', () => stop(0))
  // Started by `npm start`: reports when it is up, and ends with it.
  process.once('disconnect', () => stop(0))
  try {
    process.stdout.write(`${await start(running)}\n`)
    process.send?.('ready')
  } catch (error) {
    process.stderr.write(`sandbox: ${error instanceof Error ? error.message : String(error)}\n`)
    await stop(1)
  }
}

await main()
