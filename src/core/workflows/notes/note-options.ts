/** Requirements for a note. The names and defaults are those of basic-pitch. */
export interface NoteOptions {
  /** 0..1: how certain the beginning of a note must be. */
  onsetThreshold: number
  /** 0..1: how certain a pitch must be to continue. */
  frameThreshold: number
  /** In milliseconds. */
  minimumNoteLength: number
  /** In hertz; lower pitches are left out. Default: none. */
  minimumFrequency?: number
  /** In hertz; pitches from there on are left out. Default: none. */
  maximumFrequency?: number
  /** Whether sounds that last, but have no clear beginning, are notes as well. */
  melodiaTrick: boolean
}

export const usualNoteOptions = {
  onsetThreshold: 0.5,
  frameThreshold: 0.3,
  minimumNoteLength: 127.7,
  melodiaTrick: true,
} satisfies NoteOptions
