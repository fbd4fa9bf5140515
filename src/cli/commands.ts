import type { Command, CommandEntry } from './command.js'

/** Every subcommand by name. */
export const commands: Record<string, CommandEntry> = {
  separate: entry(
    'Separate a file or URL into vocals and accompaniment on this machine.',
    () => import('./commands/separate.js'),
  ),
  live: entry(
    'Separate a stream from standard input to standard output while it plays.',
    () => import('./commands/live.js'),
  ),
  as: {
    summary: 'Run a command of demucs or audio-separator.',
    load: async (argv) => (await import('./commands/as/as.js')).asCommand(argv),
  },
  loudness: entry(
    'Measure loudness and true peak, or write a file at another loudness.',
    () => import('./commands/loudness.js'),
  ),
  transcode: entry(
    'Convert audio to another format; cut, fade or amplify it.',
    () => import('./commands/transcode.js'),
  ),
  analyze: entry('Find tempo, beats, key and loudness of a song.', () => import('./commands/analyze.js')),
  notes: entry('Write the notes of a song or a stem as a MIDI file.', () => import('./commands/notes.js')),
  practice: entry(
    'Write accompaniments, a guide voice, clicks and timed lyrics of a song.',
    () => import('./commands/practice.js'),
  ),
  evaluate: entry(
    'Measure how well models separate songs whose stems are known.',
    () => import('./commands/evaluate.js'),
  ),
  serve: entry('Run the HTTP service.', () => import('./commands/serve.js')),
  dev: entry(
    'Run the HTTP service with the workflows of a folder, reloaded on each change.',
    () => import('./commands/dev.js'),
  ),
  mcp: entry(
    'Serve tools for agents (Model Context Protocol) on standard input and output.',
    () => import('./commands/mcp.js'),
  ),
  keys: entry('Create, list, rotate and revoke API keys; replace webhook secrets.', () => import('./commands/keys.js')),
  jobs: entry('List, show, cancel, retry and delete jobs.', () => import('./commands/jobs.js')),
  workers: entry('Show the workers of a deployment; take one out of service.', () => import('./commands/workers.js')),
  schedule: entry('Pause, resume, drain or limit jobs.', () => import('./commands/schedule.js')),
  limits: entry(
    'Show and set the daily quota of an application and how many of its jobs may wait.',
    () => import('./commands/limits.js'),
  ),
  usage: entry('Show what the jobs of a service have used.', () => import('./commands/usage.js')),
  doctor: entry('Check that a service has what it needs, and say what to do.', () => import('./commands/doctor.js')),
  worker: entry('Run jobs that other nodes accept.', () => import('./commands/worker.js')),
  models: entry('Show, fetch and remove models.', () => import('./commands/models.js')),
  completion: {
    summary: 'Print a script that completes commands and options in your shell.',
    load: async () => (await import('./commands/completion.js')).completionCommand(() => commands),
  },
}

function entry(summary: string, load: () => Promise<{ command: Command }>): CommandEntry {
  return { summary, load: async () => (await load()).command }
}
