// The transcript of a recording, by Whisper in Python (transcribe.py): stemwork serve --workflows transcribe.mjs
import { fileURLToPath } from 'node:url'
import { defineWorkflow, program } from 'stemwork'
import { z } from 'zod'

export default defineWorkflow({
  id: 'service/transcribe',
  name: 'Transcription',
  description: 'The transcript of a recording, as JSON.',
  params: z.object({ inputUrl: z.url(), model: z.enum(['tiny', 'base', 'small']).default('base') }),
  outputs: { text: { fileName: 'text.json', contentType: 'application/json' } },
  stages: [
    program('python3', {
      args: [fileURLToPath(new URL('transcribe.py', import.meta.url))],
      protocol: 'stemwork',
      timeoutMs: 3_600_000,
      // Folders of stemwork_program.py (in clients/python) and Whisper, and the folder where Whisper keeps its models.
      env: { PYTHONPATH: process.env.PYTHONPATH ?? '', XDG_CACHE_HOME: process.env.XDG_CACHE_HOME ?? '' },
    }),
  ],
})
