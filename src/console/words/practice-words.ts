/** A volume in decibels; 1 leaves the stem as it is. */
export function decibelWords(volume: number): string {
  if (volume === 0) return 'Silent'
  const decibels = 40 * Math.log10(volume)
  return `Volume ${decibels > 0 ? '+' : ''}${decibels.toFixed(1).replace('-', '−')} dB`
}

export function panWords(pan: number): string {
  if (pan === 0) return 'Pan: centre'
  return `Pan: ${Math.round(Math.abs(pan) * 100)} % ${pan < 0 ? 'left' : 'right'}`
}

export function tempoWords(tempo: number): string {
  return `${Math.round(tempo * 100)} %`
}

export function pitchWords(semitones: number): string {
  return semitones > 0 ? `+${semitones}` : String(semitones).replace('-', '−')
}
