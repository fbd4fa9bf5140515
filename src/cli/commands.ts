import type { CommandEntry } from './command.js'

/** Every subcommand by name. */
export const commands: Record<string, CommandEntry> = {
  separate: {
    summary: 'Separate a file or URL into vocals and accompaniment on this machine.',
    load: async () => (await import('./separate.js')).separateCommand,
  },
  live: {
    summary: 'Separate a stream from standard input to standard output while it plays.',
    load: async () => (await import('./live.js')).liveCommand,
  },
  as: {
    summary: 'Run a command of demucs or audio-separator.',
    load: async (argv) => (await import('./as/as.js')).asCommand(argv),
  },
  loudness: {
    summary: 'Measure loudness and true peak, or write a file at another loudness.',
    load: async () => (await import('./loudness.js')).loudnessCommand,
  },
  transcode: {
    summary: 'Convert audio to another format; cut, fade or amplify it.',
    load: async () => (await import('./transcode.js')).transcodeCommand,
  },
  analyze: {
    summary: 'Find tempo, beats, key and loudness of a song.',
    load: async () => (await import('./analyze.js')).analyzeCommand,
  },
  notes: {
    summary: 'Write the notes of a song or a stem as a MIDI file.',
    load: async () => (await import('./notes.js')).notesCommand,
  },
  practice: {
    summary: 'Write accompaniments, a guide voice, clicks and timed lyrics of a song.',
    load: async () => (await import('./practice.js')).practiceCommand,
  },
  evaluate: {
    summary: 'Measure how well models separate songs whose stems are known.',
    load: async () => (await import('./evaluate.js')).evaluateCommand,
  },
  serve: {
    summary: 'Run the HTTP service.',
    load: async () => (await import('./serve.js')).serveCommand,
  },
  dev: {
    summary: 'Run the HTTP service with the workflows of a folder, reloaded on each change.',
    load: async () => (await import('./dev.js')).devCommand,
  },
  mcp: {
    summary: 'Serve tools for agents (Model Context Protocol) on standard input and output.',
    load: async () => (await import('./mcp.js')).mcpCommand,
  },
  keys: {
    summary: 'Create, list, rotate and revoke API keys; replace webhook secrets.',
    load: async () => (await import('./keys.js')).keysCommand,
  },
  jobs: {
    summary: 'List, show, cancel, retry and delete jobs.',
    load: async () => (await import('./jobs.js')).jobsCommand,
  },
  workers: {
    summary: 'Show the workers of a deployment; take one out of service.',
    load: async () => (await import('./workers.js')).workersCommand,
  },
  schedule: {
    summary: 'Pause, resume, drain or limit jobs.',
    load: async () => (await import('./schedule.js')).scheduleCommand,
  },
  limits: {
    summary: 'Show and set the daily quota of an application and how many of its jobs may wait.',
    load: async () => (await import('./limits.js')).limitsCommand,
  },
  usage: {
    summary: 'Show what the jobs of a service have used.',
    load: async () => (await import('./usage.js')).usageCommand,
  },
  doctor: {
    summary: 'Check that a service has what it needs, and say what to do.',
    load: async () => (await import('./doctor.js')).doctorCommand,
  },
  worker: {
    summary: 'Run jobs that other nodes accept.',
    load: async () => (await import('./worker.js')).workerCommand,
  },
  models: {
    summary: 'Show, fetch and remove models.',
    load: async () => (await import('./models.js')).modelsCommand,
  },
  completion: {
    summary: 'Print a script that completes commands and options in your shell.',
    load: async () => (await import('./completion.js')).completionCommand(() => commands),
  },
}
