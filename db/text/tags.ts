/**
 * Tags that mean something to the service itself. Pure.
 * A customer's tag of the same name means nothing: what the API accepted has the id of its request.
 */

/** What marks an email that carries a sign-in link: it is in no team's lists, and its body is shown to nobody. */
export const SIGN_IN_TAG = 'heliograph:sign-in-link'
