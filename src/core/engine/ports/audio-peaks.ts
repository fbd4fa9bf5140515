/**
 * Computes the peaks of an audio file for players that draw waveforms: the lowest and highest sample of each section,
 * as JSON in the format of audiowaveform (version 2).
 *
 * @throws StemworkError `BAD_INPUT` for a file without readable audio; the signal's reason.
 */
export type AudioPeaks = (
  file: { body: AsyncIterable<Uint8Array>; fileName: string },
  signal: AbortSignal,
) => Promise<string>
