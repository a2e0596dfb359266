/** A log of every level in production's format, which only the canary reads. */
import { pino } from 'pino'
import { logOptions } from '../../db/process/log.ts'
import { type Canary, canary } from './canary.ts'

const INFO = 30

export const watchedLog = (watch: Canary) =>
  pino(logOptions({ name: 'test', LOG_LEVEL: 'debug' }), {
    write: (text: string) =>
      watch.note({ where: 'a log', text, mayHoldContents: Number(/"level":(\d+)/.exec(text)?.[1]) < INFO }),
  })

export const silentLog = watchedLog(canary)
