/**
 * How a reported event finds its row: by our own ids that travelled with the message, or by the provider's id.
 * Must not know any one channel.
 */
export type ReportedRef = { team_id: string; id: string } | { provider_message_id: string }

/**
 * The rows that events are about, as the channel names them; undefined for a provider's id that no row has.
 * @param byProviderIds looks up those of the provider, all at once.
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
