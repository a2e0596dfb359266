/** The thread of plain-texts.ts. */
import { plainText } from '../validation/plain-text.ts'

export default plainText
