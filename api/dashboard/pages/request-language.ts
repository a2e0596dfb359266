/** The language of the example requests on a page, and links to choose it. */

import { LANGUAGES } from '../../docs/samples.ts'
import type { Link } from '../components/section.ts'
import { addressWith, wordParam } from '../server/list.ts'
import type { TeamRequest } from '../server/page.ts'

export type Language = (typeof LANGUAGES)[number]

/** @throws RequestError bad_request for an unknown language. */
export const readLanguage = ({ query }: TeamRequest): Language =>
  wordParam(query, 'language', LANGUAGES) ?? 'curl'

/** @param part the fragment of the links, such as `#request`. */
export const languageLinks = (request: TeamRequest, part = ''): (Link & { current: boolean })[] =>
  LANGUAGES.map((language) => ({
    href: addressWith(request, { language: language === 'curl' ? undefined : language }) + part,
    label: language,
    current: language === readLanguage(request),
  }))
