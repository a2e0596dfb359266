/** Deletes up to `most` rows at a time until none are left. @returns the number of deleted rows. */
export async function deleteInBatches(most: number, remove: (most: number) => Promise<number>) {
  let removed = 0
  for (;;) {
    const batch = await remove(most)
    removed += batch
    if (batch < most) return removed
  }
}
