/** Mail to postmaster@ and abuse@, as the operator gets it. */
import { operatorSubject } from '../../db/messages/emails/report-envelope.ts'
import type { OperatorMail } from '../../db/messages/operator-mail.ts'
import { storableWords } from '../../db/validation/words.ts'

/** Null for mail that is not for the operator. */
export async function operatorMailOf(body: Buffer): Promise<OperatorMail | null> {
  const subject = operatorSubject(body)
  if (subject === null) return null
  const { decodeWords } = await import('postal-mime')
  return { subject: storableWords(decodeWords(subject)), body }
}
