import { badInput, type StemworkError } from '../../engine/errors.js'
import { damagedFile } from './damaged-file.js'

/**
 * The package's decoders cannot read the file, but others might. Files that make false claims about themselves are
 * refused with a `StemworkError` instead, and no other decoder tries them.
 */
export class UndecodedError extends Error {
  readonly reason: 'unsupported_format' | 'decode_failed'

  /** @param what a sentence that names the format and says what is wrong */
  constructor(
    what: string,
    { reason = 'unsupported_format', cause }: { reason?: UndecodedError['reason']; cause?: unknown } = {},
  ) {
    super(what, { cause })
    this.name = 'UndecodedError'
    this.reason = reason
  }

  /** The error for the sender of the file, if there is no other decoder. */
  toBadInput(advice = 'Send its sound as WAV, FLAC or MP3, or have ffmpeg allowed as a decoder here.'): StemworkError {
    if (this.reason === 'decode_failed') return damagedFile(this.message, this.cause)
    return badInput('unsupported_format', `${this.message} ${advice}`, this.cause)
  }
}

/** The error of a decoder that gave no audio at all. */
export function undecoded(format: string, cause?: unknown): UndecodedError {
  const said = cause instanceof Error ? cause.message : ''
  if (isLeftOut(cause))
    return new UndecodedError(`The file is ${format} with sound whose decoder is left out of this installation.`, {
      cause,
    })
  if (/unsupported|not support/i.test(said))
    return new UndecodedError(`The file is ${format} with sound that cannot be decoded (${said}).`, { cause })
  const what = `The file looks like ${format}, but no audio could be decoded from it; it is damaged or was cut off.`
  return new UndecodedError(what, { reason: 'decode_failed', cause })
}

/** Whether a decoder's package is missing, or was replaced by an empty one (docs/licences.md). */
function isLeftOut(cause: unknown): boolean {
  if (!(cause instanceof Error)) return false
  if ('code' in cause && cause.code === 'ERR_MODULE_NOT_FOUND') return true
  return cause instanceof TypeError && /is not a function/.test(cause.message)
}
