/** Recognizes automatic replies (RFC 3834), also by subject if they aren't marked. Pure. */
import { isDaemon } from '../../../db/messages/emails/report-envelope.ts'
import { headerOf, type ReportMail } from './mail.ts'
import { isQsbmf } from './plain-bounce.ts'

/** Prefixes of vacation messages' subjects in lower case, by the program's language. */
const SUBJECTS: readonly string[] = [
  ...['automatic reply', 'auto:', 'auto reply', 'auto-reply', 'autoreply', 'auto response'],
  ...['auto-response', 'autoresponse', 'vacation', 'on vacation', 'i am out of', "i'm out of"],
  ...['out of office', 'out of the office', 'out-of-office', 'away from my mail', 'away from the office'],
  ...['automatische antwort', 'abwesend', 'abwesenheit', 'nicht im büro'],
  ...['réponse automatique', 'absence du bureau', 'absent du bureau'],
  ...['respuesta automática', 'fuera de la oficina', 'risposta automatica', 'fuori sede'],
  ...['resposta automática', 'automatisch antwoord', 'afwezig'],
  ...['autosvar', 'automatiskt svar', 'automatisk svar'],
  ...['automaattinen vastaus', 'automatyczna odpowiedź', 'automatická odpověď', 'otomatik yanıt'],
  ...['автоматический ответ', '自動応答', '自动回复'],
]

export function isAutomaticReply(mail: ReportMail): boolean {
  if (isDaemon(mail.envelope) || headerOf(mail, 'x-failed-recipients') !== '' || isQsbmf(mail.text))
    return false
  const subject = (mail.email.subject ?? '').replaceAll('’', "'").trim().toLowerCase()
  return (
    /^auto-replied\b/i.test(headerOf(mail, 'auto-submitted')) ||
    SUBJECTS.some((beginning) => subject.startsWith(beginning))
  )
}
