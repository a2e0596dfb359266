/** Deletes up to `most` at a time, until none is left. @returns how many were deleted. */
export async function deleteInBatches(
  most: number,
  remove: (most: number) => Promise<number>,
): Promise<number> {
  let removed = 0
  for (;;) {
    const batch = await remove(most)
    removed += batch
    if (batch < most) return removed
  }
}
