/** The messages of errors in api/v1/. `fill` replaces the names in braces. */

export const TEXTS = {
  blockedExtension: "can't have the extension .{extension}, because mail servers reject such files",
  messageTooLarge: 'must be smaller. The encoded message would be {size} MiB, and the limit is {most} MiB',
  badDisposition: 'Content-Disposition must look like: attachment; filename="invoice.pdf"',
  noFilename: 'is required, as ?filename= or in Content-Disposition',
  multipartType: 'Content-Type must not be multipart. Send only the bytes of the file.',
  bulkPending:
    'Your contacts were accepted and are still being processed. You can safely repeat this request.',
  emailDeleting: 'The email with this idempotency key is being deleted. Try again.',
  keysDiffer: 'idempotency_key and the Idempotency-Key header must match.',
} as const
