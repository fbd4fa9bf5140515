import { useEffect, useMemo, useReducer, useState } from 'preact/hooks'
import { hasEnded, type Job } from '../client/client.js'
import type { SongClient } from './page-client.js'
import { Downloads } from './downloads.js'
import { ErrorNotice } from './error-notice.js'
import { openGrowingStems } from './growing-stems.js'
import type { JobCommands } from './job-commands.js'
import { Mixer } from './mixer.js'
import { PianoRoll } from './piano-roll.js'
import { Report } from './report.js'
import { ResultFiles } from './result-files.js'
import { openStems, type Stem } from './stems.js'
import { type AnalysisReport, rhythmOf, type SongRhythm } from './rhythm.js'
import { Rest, Work } from './work.js'
import { explain, type Explanation } from './words.js'

interface ResultsProps {
  client: SongClient
  job: Job
  commands?: JobCommands
  /** Only what can be heard is here. */
  isOffline?: boolean
  onRhythm?: Parameters<typeof Mixer>[0]['onRhythm']
}

/**
 * How far a job is, and its stems to listen to, as far as they are made: what tells of the work then moves below them,
 * so that nothing else on the page moves, neither then nor at the end. Then come the files to download.
 */
export function Results({ client, job, commands, isOffline, onRhythm }: ResultsProps) {
  const isDone = job.result !== null
  const isMade = isDone || job.status === 'STARTED'
  const files = useMemo(() => new ResultFiles(client, job), [client, job.id, isDone])
  const [stems, setStems] = useState<Stem[]>()
  const found = useAnalysis(isDone ? files : undefined)
  const [problem, setProblem] = useState<Explanation>()
  const onError = (error: unknown) => setProblem(explain(error))
  const [, redraw] = useReducer((count: number) => count + 1, 0)
  useEffect(() => {
    if (!isMade) return
    const stop = new AbortController()
    const { signal } = stop
    const opened = isDone
      ? openStems(client, files, signal)
      : openGrowingStems(client, job, { signal, onGrown: () => redraw(undefined) })
    // What cannot be heard before the end is heard then.
    opened.then(
      (all) => signal.aborted || setStems(all),
      (error: unknown) => signal.aborted || !isDone || onError(error),
    )
    return () => stop.abort()
  }, [files, isMade])

  const heard = playable(stems)
  const hasFiles = isDone && !isOffline
  return (
    <>
      {!hasEnded(job) && !heard && <Work client={client} job={job} />}
      {problem && <ErrorNotice problem={problem} />}
      {isDone && !stems && !problem && <p class="quiet">Loading …</p>}
      {hasFiles && <Measured job={job} files={files} />}
      {heard && (
        <Mixer
          key={job.id}
          onRhythm={onRhythm}
          stems={heard}
          jobId={job.id}
          work={!hasEnded(job) && <Rest job={job} />}
          {...songOf(job)}
          found={found}
        />
      )}
      {hasFiles && <Files job={job} files={files} commands={commands} onError={onError} />}
    </>
  )
}

function playable(stems: Stem[] | undefined): Stem[] | undefined {
  return stems?.some(({ source }) => source.frames > 0 || source.promisedFrames) ? stems : undefined
}

function Measured({ job, files }: { job: Job; files: ResultFiles }) {
  return (
    <>
      <Report job={job} files={files} />
      {hasNotes(files) && <PianoRoll files={files} />}
    </>
  )
}

function Files(props: Parameters<typeof Downloads>[0]) {
  const { details } = props.job
  return (
    <>
      <Downloads {...props} />
      {/* How the next song can be better, which is up to whoever runs the service. */}
      {props.commands && typeof details?.hint === 'string' && <p class="quiet">{details.hint}</p>}
    </>
  )
}

/** The rhythm of the song, if the job has analyzed it. */
function useAnalysis(files: ResultFiles | undefined): SongRhythm | undefined {
  const [found, setFound] = useState<SongRhythm>()
  useEffect(() => {
    if (!files?.names.includes('analysis')) return
    const stop = new AbortController()
    files
      .reader('analysis')({ start: 0 }, stop.signal)
      .then(({ bytes }) => setFound(rhythmOf(JSON.parse(new TextDecoder().decode(bytes)) as AnalysisReport)))
      // The person can still have the beats found here.
      .catch(() => undefined)
    return () => stop.abort()
  }, [files])
  return found
}

/** By the tags of its file, else by its name. */
function songOf({ name, details }: Job): { song: string; artist?: string } {
  const { title, artist } = (details ?? {}) as { title?: string; artist?: string }
  return { song: title ?? name?.replace(/\.\w+$/, '') ?? 'Song', artist }
}

/** Whether a job has written notes as `service/notes` does. */
function hasNotes(files: ResultFiles): boolean {
  return files.names.includes('notes') && files.names.includes('midi')
}
