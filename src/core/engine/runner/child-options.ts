import { z } from 'zod'

const count = z.number().int().positive()

export const childOptionsSchema = z.strictObject({
  environment: z
    .record(z.string(), z.string())
    .default({})
    .describe(
      'Environment variables for the child processes, in addition to the few that they inherit (`PATH`, ' +
        '`STEMWORK_*`, ...). They inherit no others.',
    ),
  nodeArguments: z
    .array(z.string())
    .default([])
    .describe(
      'Node arguments for the child processes, for example `--max-old-space-size=2048`. They do not inherit the ' +
        "host's arguments.",
    ),
  startTimeoutMs: count.default(30_000).describe('How long a new child process may take to start.'),
  idleMs: count
    .max(2 ** 31 - 1)
    .default(600_000)
    .describe('How long an idle child process and its loaded models are kept.'),
})

export type ChildOptions = z.input<typeof childOptionsSchema>
