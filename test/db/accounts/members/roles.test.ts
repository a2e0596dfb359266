/** The rights of roles. */
import { lesser, ROLES, reaches } from '../../../../db/accounts/members/roles.ts'
import t from '../../../support/tap.ts'

t.test('viewers read, editors also change, owners also manage', (t) => {
  t.strictSame(ROLES, ['viewer', 'editor', 'owner'])
  const allowed = { viewer: ['viewer'], editor: ['viewer', 'editor'], owner: ['viewer', 'editor', 'owner'] }
  for (const role of ROLES)
    t.strictSame(
      ROLES.filter((needed) => reaches(role, needed)),
      allowed[role],
    )
  t.end()
})

t.test('returns the less privileged of two roles', (t) => {
  for (const [one, other, least] of [
    ['viewer', 'owner', 'viewer'],
    ['owner', 'editor', 'editor'],
    ['editor', 'editor', 'editor'],
  ] as const) {
    t.equal(lesser(one, other), least)
    t.equal(lesser(other, one), least)
  }
  t.end()
})
