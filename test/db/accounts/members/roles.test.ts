/** What a role reaches. */
import { lesser, ROLES, reaches } from '../../../../db/accounts/members/roles.ts'
import t from '../../../support/tap.ts'

t.test('a viewer reads, an editor changes as well, an owner manages as well', (t) => {
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
