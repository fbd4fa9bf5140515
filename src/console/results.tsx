import { useEffect, useMemo, useReducer, useState } from 'preact/hooks'
import type { Job } from '../client/client.js'
import type { Client } from './page-client.js'
import { Downloads } from './downloads.js'
import { ErrorNotice } from './error-notice.js'
import { openGrowingStems } from './growing-stems.js'
import type { JobCommands } from './job-commands.js'
import { Mixer } from './mixer.js'
import { PianoRoll } from './piano-roll.js'
import { Report } from './report.js'
import { ResultFiles } from './result-files.js'
import { openStems, type Stem } from './stems.js'
import { explain, type Explanation } from './words.js'

interface ResultsProps {
  client: Client
  job: Job
  commands?: JobCommands
  onRhythm?: Parameters<typeof Mixer>[0]['onRhythm']
}

/** The stems to listen to, of a running job as far as they are made, and every file to download. */
export function Results({ client, job, commands, onRhythm }: ResultsProps) {
  const isDone = job.result !== null
  const files = useMemo(() => new ResultFiles(client, job), [client, job.id, isDone])
  const [stems, setStems] = useState<Stem[]>()
  const [problem, setProblem] = useState<Explanation>()
  const [, redraw] = useReducer((count: number) => count + 1, 0)
  useEffect(() => {
    const stop = new AbortController()
    const { signal } = stop
    const opened = isDone
      ? openStems(client, files, signal)
      : openGrowingStems(client, job, { signal, onGrown: () => redraw(undefined) })
    // What cannot be heard before the end is heard then.
    const onError = (error: unknown) => signal.aborted || !isDone || setProblem(explain(error))
    opened.then((all) => signal.aborted || setStems(all), onError)
    return () => stop.abort()
  }, [files])

  return (
    <>
      {problem && <ErrorNotice problem={problem} />}
      {isDone && !stems && !problem && <p class="quiet">Loading …</p>}
      {isDone && <Report job={job} files={files} />}
      {isDone && hasNotes(files) && <PianoRoll files={files} />}
      {stems?.some(({ source }) => source.frames > 0) && (
        <Mixer
          key={job.id}
          onRhythm={onRhythm}
          stems={stems}
          jobId={job.id}
          song={job.name?.replace(/\.\w+$/, '') ?? 'Song'}
        />
      )}
      {isDone && (
        <Downloads job={job} files={files} commands={commands} onError={(error) => setProblem(explain(error))} />
      )}
    </>
  )
}

/** Whether a job has written notes as `service/notes` does. */
function hasNotes(files: ResultFiles): boolean {
  return files.names.includes('notes') && files.names.includes('midi')
}
