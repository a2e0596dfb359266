/**
 * Applies the provider's events about templates, in the caller's transaction. They name an account and no team, so
 * they apply to the template with that name in each team of the account. The latest event counts. Within one second,
 * the most restrictive does.
 */

import { publish } from '../../channels/events/webhooks.ts'
import { APPLIED, type EventResult, ignored } from '../../delivery/reports/event-result.ts'
import type { Tx } from '../../postgres/pool.ts'
import {
  applyTemplateUpdates,
  storeTemplateFacts,
  type TemplateChange,
  type TemplateFacts,
  type TemplateUpdate,
  teamsWithTemplates,
  withUnderscores,
} from './templates.sql.ts'

const keyOf = ({ name, language, account_id, number }: Omit<TemplateChange, 'occurred_at'>): string =>
  JSON.stringify([name, withUnderscores(language), account_id, number])

/** Applies state events in one statement. @returns a result for each. */
export async function applyReportedTemplates(tx: Tx, news: readonly TemplateUpdate[], now: Date) {
  const there = new Set((await applyTemplateUpdates(tx, news, now)).map(keyOf))
  return news.map((one) => (there.has(keyOf(one)) ? APPLIED : ignored('no team has this template')))
}

/**
 * Handles changes of template content, which the events don't include.
 * @returns for each, the teams whose lists must be synced.
 */
export async function applyTemplateChanges(
  tx: Tx,
  changes: readonly TemplateChange[],
): Promise<EventResult[]> {
  const teams = Map.groupBy(await teamsWithTemplates(tx, changes), keyOf)
  return changes.map((change) => {
    const own = teams.get(keyOf(change)) ?? []
    if (own.length === 0) return ignored('no team has this template')
    return { kind: 'applied', sync: own.map(({ team_id }) => team_id) }
  })
}

/**
 * Applies Meta's other events about templates. A new category triggers a webhook and a notice to the owners.
 * @returns a result for each.
 */
export async function applyTemplateFacts(tx: Tx, facts: readonly TemplateFacts[], now: Date) {
  const results: EventResult[] = []
  for (const one of facts) {
    const meant = await storeTemplateFacts(tx, one, now)
    const changed = one.category === undefined ? [] : meant.filter(({ category, was }) => category !== was)
    await publish(
      tx,
      changed.flatMap(({ has_listeners, was: from, category: to, team_id, id, name, language }) =>
        has_listeners
          ? [
              {
                ...{ subject: 'other' as const, kind: 'whatsapp_template.category_changed' as const },
                ...{ team_id, id, occurred_at: one.occurred_at, detail: '' },
                about: { template_id: id, name, language, from, to },
              },
            ]
          : [],
      ),
    )
    const notices = changed.map(({ team_id, id: template_id, was }) => ({
      ...{ team_id, template_id, category_before: was ?? 'none' },
    }))
    results.push(meant.length === 0 ? ignored('no team has this template') : { kind: 'applied', notices })
  }
  return results
}
