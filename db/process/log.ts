/**
 * The log: pino, one JSON object per line, or readable lines in development. Errors are logged by name, message, code
 * and stack only, because a driver's error contains the values of the failed query. Customer content is never logged
 * above debug.
 */
import { type DestinationStream, type Logger, pino, stdTimeFunctions } from 'pino'

export type Log = Logger

const describeError = (error: unknown): unknown => {
  if (!(error instanceof Error)) return { message: String(error) }
  const { cause } = error
  const code = 'code' in error ? error.code : undefined
  return {
    type: error.name,
    message: error.message,
    ...(code === undefined ? {} : { code }),
    stack: error.stack,
    ...(cause === undefined ? {} : { cause: describeError(cause) }),
  }
}

/** Readable lines, if pino-pretty is installed (a development dependency); JSON otherwise. */
async function prettyStream(): Promise<DestinationStream | undefined> {
  try {
    const { default: pretty } = await import('pino-pretty')
    return pretty({
      colorize: false,
      sync: true,
      singleLine: true,
      ignore: 'pid,hostname',
      translateTime: 'SYS:HH:MM:ss.l',
    })
  } catch {
    return undefined
  }
}

export const logOptions = ({ name, LOG_LEVEL }: { name: string; LOG_LEVEL: string }) => ({
  name,
  level: LOG_LEVEL,
  timestamp: stdTimeFunctions.isoTime,
  serializers: { err: describeError },
})

/** Makes the process's log. `name` distinguishes the processes of one deployment. */
export async function createLog(settings: {
  name: string
  LOG_LEVEL: string
  LOG_FORMAT: string
}): Promise<Log> {
  const options = logOptions(settings)
  const stream = settings.LOG_FORMAT === 'pretty' ? await prettyStream() : undefined
  if (stream) return pino(options, stream)
  const log = pino(options)
  if (settings.LOG_FORMAT === 'pretty')
    log.warn(
      'LOG_FORMAT=pretty needs pino-pretty, which is only part of a development install, so the log is JSON',
    )
  return log
}
