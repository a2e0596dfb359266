/** Teams with a contact, whose emails bounce until she is suppressed. */
import type { ContactEffect } from '../../db/audience/contacts/effect.ts'
import { liftSuppression, showContact } from '../../db/audience/suppressions/lift.ts'
import { applyEmailEvents } from '../../db/messages/emails/apply-events.ts'
import type { EmailEvent } from '../../db/messages/emails/events.sql.ts'
import type { EmailEventKind } from '../../db/messages/emails/status.ts'
import { createSecrets } from '../../db/process/secrets.ts'
import { SECRET_KEY } from './environment.ts'
import { contactState, storeContact, storeEmails, storeTeam } from './reports.ts'
import { openStore } from './stored-emails.ts'
import type { Test } from './tap.ts'

export const REPORT = '0190a1b2-0000-7000-8000-00000000000c'
export const SUPPRESSED = { status: 'bounced', suppression: 'bounced' }
export const FREE = { status: 'subscribed', suppression: null }
const START = Date.UTC(2026, 0, 1)
export const hour = (hours: number): Date => new Date(START + hours * 3_600_000)

export async function startSuppressions(t: Test) {
  const service = await openStore(t)
  const { database } = service
  const secrets = createSecrets(SECRET_KEY)

  /** Creates a team with the contact ana@example.org, and events of emails to her. */
  async function begin(status: 'subscribed' | 'unsubscribed' = 'subscribed') {
    const team = await storeTeam(service)
    const ana = 'ana@example.org'
    const contact_id = await storeContact(service, team, ana, status)
    const email = async () => (await storeEmails(service, team, [[ana]], { contact_id }))[0] ?? ''
    const happen = async (email_id: string, kind: EmailEventKind, effect: ContactEffect, at: Date) => {
      const event: EmailEvent = {
        ...{ team_id: team, email_id, kind, effect, recipient: ana, occurred_at: at },
        ...{ event_key: `${kind}:${at.toISOString()}`, report_id: REPORT },
        detail: `what the server said of ${kind}`,
      }
      await database.transaction((tx) => applyEmailEvents(tx, [event], at))
    }
    /** Stores soft bounces of separate emails, an hour apart. @returns the last email. */
    const softBounces = async (count: number, from = 0): Promise<string> => {
      let last = ''
      for (let index = 0; index < count; index++) {
        last = await email()
        await happen(last, 'bounced', 'soft', hour(from + index))
      }
      return last
    }
    const shown = () => showContact(database, team, ana)
    const state = () => contactState(service, team, ana)
    const lift = (reason = 'she asked') =>
      database.transaction((tx) => {
        const by = { tx, now: hour(100), actor: 'cli', secrets }
        return liftSuppression(by, team, { identity: ana, reason })
      })
    return { team, contact_id, email, happen, softBounces, shown, state, lift }
  }
  return { service, database, begin }
}
