/** The error messages of db/content/. `fill` replaces the names in braces. */

export const TEXTS = {
  uploadTooSlow: 'The upload took too long. Try again.',
  emptyBody: 'The request body must have at least 1 byte.',
  fileDeleted: 'The content of this attachment has been deleted.',
  filesDeleted: 'The content of these attachments has been deleted: {names}.',
  badTemplate: 'is not a valid template: {reason}',
  tooManyVariables:
    "A template can have at most {most} variables, because an email can't have values for more.",
  templateExists: 'must be unique. The team already has a template {name}',
  noTemplate: 'No template {id} in this team.',
  savedByOther:
    'Someone else saved this template while you were editing. Your version is below. Compare the two, then save again.',
  noDraft: 'This draft no longer exists. Someone published or discarded it.',
  draftChanged: '{who} changed this draft while you were editing. Review it, then try again.',
  publishedSince:
    'Another version was published after you started this draft. Review what the draft changes, then try again.',
} as const
