/** Which parts of HTML are attribute values. Encoded variables are only decoded there. */
import { decodeVariables } from '../../../db/validation/attributes.ts'
import t from '../../support/tap.ts'

const ENCODED = '%7B%7Bname%7D%7D'

t.test('decodes quoted and unquoted values', (t) => {
  for (const html of [
    `<a href="${ENCODED}">`,
    `<a href='${ENCODED}'>`,
    `<a href=${ENCODED}>`,
    `<a b = ${ENCODED} c>`,
  ]) {
    const found = decodeVariables(html)
    t.equal(found.html, html.replace(ENCODED, '{{name}}'), html)
    t.strictSame(found.decoded, ['name'], html)
  }
  t.end()
})

t.test('leaves everything else', (t) => {
  for (const html of [
    ENCODED,
    `ab="${ENCODED}"`,
    `<a x=1>${ENCODED}</a>`,
    `<a x=1>b=${ENCODED}</a>`,
    `<a x=1>b="${ENCODED}"</a>`,
    `<a x="1">b="${ENCODED}"</a>`,
    `<a${ENCODED}>`,
    `<1 x="${ENCODED}">`,
    `<a x="${ENCODED}`,
    `--><!-- <a x="${ENCODED}"> --><p>`,
    `<!-- <a x="${ENCODED}">`,
    '<',
  ])
    t.strictSame(decodeVariables(html), { html, decoded: [] }, html)
  t.end()
})
