/** Names the browser of a `User-Agent` header. Pure. */

/** The first match counts, because Edge and Opera also name Chrome, and Chrome also names Safari. */
const BROWSERS: readonly [RegExp, string][] = [
  [/\bEdg(?:e|A|iOS)?\//, 'Edge'],
  [/\b(?:OPR|OPX)\//, 'Opera'],
  [/\b(?:Firefox|FxiOS)\//, 'Firefox'],
  [/\b(?:HeadlessChrome|Chrome|Chromium|CriOS)\//, 'Chrome'],
  [/\bSafari\//, 'Safari'],
]

/** Android also names Linux, and iPhones also name Mac OS X. */
const SYSTEMS: readonly [RegExp, string][] = [
  [/\b(?:iPhone|iPad)\b/, 'iOS'],
  [/\bAndroid\b/, 'Android'],
  [/\bWindows\b/, 'Windows'],
  [/\bMac OS X\b/, 'macOS'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bLinux\b/, 'Linux'],
]

const nameIn = (userAgent: string, names: readonly [RegExp, string][]): string | undefined =>
  names.find(([pattern]) => pattern.test(userAgent))?.[1]

/** Returns a name such as `Firefox on Windows`, or the header itself if its browser is unknown. */
export function browserName(userAgent: string): string {
  const browser = nameIn(userAgent, BROWSERS)
  if (browser === undefined) return userAgent
  const system = nameIn(userAgent, SYSTEMS)
  return system === undefined ? browser : `${browser} on ${system}`
}
