/** Publishes the DKIM records of pages. */
import { textOf, type Visitor } from './dashboard.ts'

/** Publishes the first DKIM record on the page of a domain. */
export async function publishRecord(dns: Map<string, string[]>, person: Visitor, page: string) {
  const { html } = await person.get(page)
  const [name = ''] = /[\w-]+\._domainkey\.[\w.-]+/.exec(html) ?? []
  dns.set(name, [/v=DKIM1; k=rsa; p=[\w+/]+={0,2}/.exec(textOf(html))?.[0] ?? ''])
}
