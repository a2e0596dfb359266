/** Finds the row of a reported event by our own IDs, which came back with it, or by the provider's ID. */
export type ReportedRef = { team_id: string; id: string } | { provider_message_id: string }

/**
 * Returns the rows of events, as the channel identifies them. Undefined if no row has the provider's ID.
 * @param byProviderIds looks up provider IDs in one query.
 */
export async function rowsOfReported<R>(
  events: readonly { ref: ReportedRef }[],
  ownOf: (team_id: string, id: string) => R,
  byProviderIds: (ids: readonly string[]) => Promise<ReadonlyMap<string, R>>,
): Promise<(R | undefined)[]> {
  const ids = events.flatMap(({ ref }) => ('provider_message_id' in ref ? [ref.provider_message_id] : []))
  const found = ids.length > 0 ? await byProviderIds([...new Set(ids)]) : null
  return events.map(({ ref }) =>
    'provider_message_id' in ref
      ? found?.get(ref.provider_message_id)
      : ownOf(ref.team_id.toLowerCase(), ref.id.toLowerCase()),
  )
}
