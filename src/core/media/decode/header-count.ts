import { damagedFile } from './damaged-file.js'

/** Real files have tens of headers. A chain of very many small ones would cost more time than the song itself. */
const mostHeaders = 10_000

/**
 * Counts the headers (chunks, boxes, tags, metadata blocks) that are read before the audio. Each call counts one.
 *
 * @param what plural name of the headers and where they are, for the error
 * @returns a function that throws StemworkError `BAD_INPUT` `decode_failed` when there are too many
 */
export function headerCount(what: string, most = mostHeaders): () => void {
  let count = 0
  return () => {
    if (++count > most) throw damagedFile(`The file has more than ${most} ${what}, which no real file has.`)
  }
}
