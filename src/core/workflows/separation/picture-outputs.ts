import type { OutputDeclaration } from '../../engine/workflow/workflow.js'

/** The picture outputs of a stem: `<stem>Peaks` and `<stem>Waveform`. */
export function pictureOutputs(stems: readonly string[]): Record<string, OutputDeclaration> {
  const outputs: Record<string, OutputDeclaration> = {}
  for (const stem of stems) {
    outputs[peaksOf(stem)] = { fileName: `${stem}.peaks.json`, contentType: 'application/json' }
    outputs[waveformOf(stem)] = { fileName: `${stem}.waveform.png`, contentType: 'image/png' }
  }
  return outputs
}

export function peaksOf(stem: string): string {
  return `${stem}Peaks`
}

export function waveformOf(stem: string): string {
  return `${stem}Waveform`
}
