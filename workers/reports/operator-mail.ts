/** Converts mail to postmaster@ and abuse@ for the operator. */
import { operatorSubject } from '../../db/messages/emails/report-envelope.ts'
import type { OperatorMail } from '../../db/messages/operator-mail.ts'
import { storableWords } from '../../db/validation/words.ts'

/** Returns null for mail that isn't for the operator. */
export async function readOperatorMail(body: Buffer): Promise<OperatorMail | null> {
  const subject = operatorSubject(body)
  if (subject === null) return null
  const { decodeWords } = await import('postal-mime')
  return { subject: storableWords(decodeWords(subject)), body }
}
