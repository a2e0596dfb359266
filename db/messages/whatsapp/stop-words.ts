/** The words by which recipients opt out of marketing, and in again, and the setting that adds some. Pure. */
import { string } from 'yup'
import { commaList } from '../../process/config.ts'

const STOP_WORDS: readonly string[] = [
  ...['stop', 'unsubscribe', 'arret', 'arrêt', 'stopp', 'baja', 'parar', 'sair'],
  ...['abmelden', 'afmelden', 'disiscrivimi'],
]
const START_WORDS: readonly string[] = ['start', 'unstop']

/** It cancels appointments and orders, too. */
const NEVER = 'cancel'

/** Longer texts are no single word. */
const LONGEST_WORD = 100

const folded = (text: string): string => text.trim().normalize('NFC').toLowerCase()

/** WHATSAPP_STOP_WORDS: words besides ours, separated by commas. */
export const stopWordsSetting = string().test(
  'stop words',
  '${path} must not have CANCEL: recipients say it about appointments and orders, too',
  (text) => !commaList(text).some((word) => folded(word) === NEVER),
)

/** The words of the setting, as texts are compared. */
export const stopWordsOf = (setting: string | undefined): string[] => commaList(setting).map(folded)

/** Whether a text asks to stop or to start, in any case and between spaces. @param added by `stopWordsOf`. */
export function keywordOf(text: unknown, added: readonly string[]): 'stop' | 'start' | null {
  if (typeof text !== 'string' || text.length > LONGEST_WORD) return null
  const word = folded(text)
  if (STOP_WORDS.includes(word) || added.includes(word)) return 'stop'
  return START_WORDS.includes(word) ? 'start' : null
}
