/** A track of labels as Audacity imports it: the start, the end and the text of each, separated by tabs. */
export function labelTrack(labels: readonly { start: number; end: number; text: string }[]): string {
  return labels.map(({ start, end, text }) => `${start.toFixed(6)}\t${end.toFixed(6)}\t${text}\n`).join('')
}
