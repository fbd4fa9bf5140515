import { z } from 'zod'

/**
 * Who may own jobs. Uploads lie in a folder of this name: with a slash in it, that would be inside the folder of
 * another application, and count as its storage. What only reads takes any text, because stores of older versions may
 * have other ids.
 */
export const applicationIdSchema = z
  .string()
  .regex(
    /^(?!\.+$)[A-Za-z0-9._-]{1,128}$/,
    'must have 1 to 128 letters, digits and "._-", and not only dots. Encode ids of another form: ' +
      "Buffer.from(id).toString('base64url')",
  )
