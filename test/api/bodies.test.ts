/** The shapes of bodies that the parser's thread loads. */
import { BODIES } from '../../api/v1/bodies.ts'
import { V1_ROUTES } from '../../api/v1/routes.ts'
import t from '../support/tap.ts'

t.test('the parser’s thread knows every route with a body', async (t) => {
  const declared = V1_ROUTES.flatMap(({ method, path, body }) => (body ? [[`${method} ${path}`, body]] : []))
  t.strictSame(Object.keys(BODIES).sort(), declared.map(([route]) => route).sort())
  for (const [route, body] of declared) t.equal(BODIES[String(route)], body, String(route))
})
