/** Recognizes the keywords that opt recipients out of marketing and in again, and the setting that adds some. */
import { string } from 'yup'
import { commaList } from '../../process/config.ts'

const STOP_WORDS: readonly string[] = [
  ...['stop', 'unsubscribe', 'arret', 'arrêt', 'stopp', 'baja', 'parar', 'sair'],
  ...['abmelden', 'afmelden', 'disiscrivimi'],
]
const START_WORDS: readonly string[] = ['start', 'unstop']

/** Recipients also use it for appointments and orders. */
const NEVER = 'cancel'

/** A longer text isn't a single word. */
const LONGEST_WORD = 100

/** Folds case: through upper case, `ß` equals `ss`, and each form of a letter becomes one. */
const folded = (text: string): string => text.trim().normalize('NFC').toUpperCase().toLowerCase()

/** WHATSAPP_STOP_WORDS: additional keywords, separated by commas. */
export const stopWordsSetting = string().test(
  'stop words',
  '${path} must not contain CANCEL, because recipients also use it about appointments and orders',
  (text) => !commaList(text).some((word) => folded(word) === NEVER),
)

/** Returns the setting's keywords, normalized for comparison. */
export const parseStopWords = (setting: string | undefined): string[] => commaList(setting).map(folded)

/** Returns the keyword of a text, in any case and with surrounding spaces. @param added from `parseStopWords`. */
export function findKeyword(text: unknown, added: readonly string[]): 'stop' | 'start' | null {
  if (typeof text !== 'string' || text.length > LONGEST_WORD) return null
  const word = folded(text)
  if (STOP_WORDS.includes(word) || added.includes(word)) return 'stop'
  return START_WORDS.includes(word) ? 'start' : null
}
