/**
 * Tags that mean something to the service itself. Pure.
 * A customer's tag of the same name means nothing: what the API accepted has the id of its request.
 */

/**
 * What marks an email of ours, named after its first use: one with a sign-in link, or a notice to a team's owners. It
 * is in no team's lists, and its body is shown to nobody.
 */
export const SIGN_IN_TAG = 'heliograph:sign-in-link'
