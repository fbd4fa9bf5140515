import { z } from 'zod'
import { fileExtensions } from './file-extensions.js'

/** The param `inputUrl` of a job: where the song is. */
export function inputUrlParam(decoders: { ffmpeg?: boolean | string } | undefined) {
  return (
    z
      .url({
        protocol: /^https?$/,
        error: ({ input }) =>
          input === undefined
            ? 'is missing: expected the address of the song'
            : 'expected an address that begins with http:// or https://',
      })
      .max(8192)
      .describe('Address of the song (http or https).')
      // For clients that look at a file before they send it.
      .meta({ 'x-fileExtensions': fileExtensions(Boolean(decoders?.ffmpeg)) })
  )
}
