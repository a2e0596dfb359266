/**
 * Recognizes automatic opens and clicks by user agent: Apple's proxy and scanners. Such events change nothing. Pure.
 */

/** Apple Mail Privacy Protection sends only this. Browsers always add to it. */
const APPLE_PROXY = 'Mozilla/5.0'

/** Parts of user agents in lower case, with their sources. */
const SCANNERS: readonly (readonly [part: string, source: string])[] = [
  ['barracudacentral', 'Barracuda, barracudacentral.org/spider'],
  ['barracuda sentinel', 'Barracuda Sentinel (EE), its link protection'],
  ['proofpoint', 'Proofpoint URL Defense'],
  ['mimecast', 'Mimecast URL Protect'],
  ['trend micro', 'Trend Micro web reputation'],
  ['symantec', 'Symantec Email Security.cloud link following'],
  ['messagelabs', 'Symantec Email Security.cloud, formerly MessageLabs'],
  ['fireeye', 'FireEye (Trellix) Email Security'],
  ['sophos', 'Sophos Email time-of-click protection'],
  ['cisco', 'Cisco Secure Email URL scanning'],
  ['safelinks', 'Microsoft Defender for Office 365 Safe Links'],
  ['bingpreview', 'Microsoft, link previews'],
  ['skypeuripreview', 'Microsoft Teams and Skype, link previews'],
  ['googleimageproxy prefetch', 'Google, images that are fetched before they are opened'],
  ['slackbot', 'Slack, api.slack.com/robots'],
  ['linkedinbot', 'LinkedIn, link previews'],
  ['facebookexternalhit', 'Meta, developers.facebook.com/docs/sharing/webmasters/crawler'],
  ['headlesschrome', 'Chrome without a screen, as sandboxes of scanners use it'],
  ['phantomjs', 'PhantomJS, as sandboxes of scanners use it'],
  ['python-requests', 'python-requests, a library'],
  ['curl/', 'curl, a program'],
  ['go-http-client', 'Go, a library'],
]

export function isMachine(userAgent: string): boolean {
  const agent = userAgent.trim()
  const folded = agent.toLowerCase()
  return agent === APPLE_PROXY || SCANNERS.some(([part]) => folded.includes(part))
}
