/** The tags of DKIM, SPF and DMARC records. Pure. */

/** A record's tags by name, without whitespace (RFC 6376 §3.2 allows it around and inside values). */
export const recordTags = (record: string): Map<string, string> =>
  new Map(
    record.split(';').map((tag) => {
      const [name = '', ...value] = tag.replace(/\s+/g, '').split('=')
      return [name, value.join('=')]
    }),
  )

/** True for a record that starts with `v=` and this version. */
export const hasVersion =
  (version: string) =>
  (record: string): boolean =>
    new RegExp(`^\\s*v\\s*=\\s*${version}(\\s|;|$)`, 'i').test(record)
