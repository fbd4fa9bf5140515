import { useEffect, useMemo, useReducer, useState } from 'preact/hooks'
import { hasEnded, type Job } from '../../client/client.js'
import type { SongClient } from '../service/page-client.js'
import { Downloads } from './downloads.js'
import { ErrorNotice } from '../elements/error-notice.js'
import { awaitedStems, isGrown, openGrowingStems } from '../sources/growing-stems.js'
import type { JobCommands } from '../jobs/job-commands.js'
import { openLocalSong } from '../sources/local-song.js'
import { Mixer } from '../mixer/mixer.js'
import type { PcmSource } from '../sources/pcm-source.js'
import { PianoRoll } from '../mixer/piano-roll.js'
import { Report } from './report.js'
import { type ResultFiles, resultFiles } from '../sources/result-files.js'
import { openStems, type Stem } from '../sources/stems.js'
import { type AnalysisReport, rhythmOf, type SongRhythm } from '../player/rhythm.js'
import type { Upload } from '../uploads/upload.js'
import { useAnswer } from '../elements/use-answer.js'
import { Work } from './work.js'
import { explain, type Explanation } from '../words/words.js'

interface ResultsProps {
  client: SongClient
  /** Undefined while its file is being uploaded. */
  job: Job | undefined
  /** The upload that the job was made from, if this page has it. */
  upload?: Upload
  commands?: JobCommands
  /** Whether only playable files are available. */
  isOffline?: boolean
  onRhythm?: Parameters<typeof Mixer>[0]['onRhythm']
}

/**
 * Plays a song's stems, as far as they are made, and shows the progress of the job: alone while there is nothing to
 * hear, else below the stems, so that nothing moves until the end. The files to download follow.
 */
export function Results({ client, job, upload, commands, isOffline, onRhythm }: ResultsProps) {
  const files = useMemo(() => (job?.result ? resultFiles(client, job) : undefined), [client, job?.id, !job?.result])
  const [problem, setProblem] = useState<Explanation>()
  const onError = (error: unknown) => setProblem(explain(error))
  const { stems, whole, heard } = useHeard({ client, job, upload, files, onError })
  const found = useAnalysis(files)
  const made = job && files && !isOffline ? { job, files } : undefined
  return (
    <>
      {job && !heard && <Unheard client={client} job={job} isOpening={!stems && !problem} />}
      {problem && <ErrorNotice problem={problem} />}
      {made && <Measured {...made} />}
      {heard && <Song {...{ client, job, upload, whole, found, onRhythm }} stems={heard} />}
      {made && <Files {...made} commands={commands} onError={onError} />}
    </>
  )
}

function Unheard({ client, job, isOpening }: { client: SongClient; job: Job; isOpening: boolean }) {
  if (!hasEnded(job)) return <Work client={client} job={job} />
  return isOpening ? <p class="quiet">Loading …</p> : null
}

interface SongProps extends Pick<ResultsProps, 'client' | 'job' | 'upload' | 'onRhythm'> {
  stems: Stem[]
  whole: PcmSource | undefined
  found: SongRhythm | undefined
}

/** The song's player, with the progress of its job. */
function Song({ client, job, upload, ...heard }: SongProps) {
  const work = job && !hasEnded(job) && <Work client={client} job={job} isLine />
  return <Mixer {...heard} jobId={job?.id} work={work} {...songOf(job, upload)} />
}

interface HeardProps extends Pick<ResultsProps, 'client' | 'job' | 'upload'> {
  files: ResultFiles | undefined
  onError(error: unknown): void
}

/** The stems as far as they can be played, and the original song for the rest. */
function useHeard({ client, job, upload, files, onError }: HeardProps) {
  const isMade = files !== undefined || job?.status === 'STARTED'
  const whole = useWhole(upload)
  const awaited = useMemo(() => upload && whole && awaitedStems(upload.choices.workflow, whole), [whole])
  const [stems, setStems] = useState<Stem[]>()
  const [, redraw] = useReducer((count: number) => count + 1, 0)
  useEffect(() => {
    if (!job || !isMade) return
    const stop = new AbortController()
    const { signal } = stop
    const opened = files
      ? openStems(client, files, signal)
      : openGrowingStems(client, job, { signal, onGrown: () => redraw(undefined) })
    // Ignores errors while stems grow: they are opened again at the end.
    opened.then(
      (all) => signal.aborted || setStems(all),
      (error: unknown) => signal.aborted || !files || onError(error),
    )
    return () => stop.abort()
  }, [files, isMade])
  return { stems, whole, heard: playable(stems) ?? awaited }
}

/** The original song, from the file on this device, for workflows whose stems play while they are made. */
function useWhole(upload: Upload | undefined): PcmSource | undefined {
  return useAnswer(
    (signal) => (upload && isGrown(upload.choices.workflow) ? openLocalSong(upload.file, signal) : undefined),
    [upload?.number],
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
      {/* How the next song can sound better, which is up to the operator of the service. */}
      {props.commands && typeof details?.hint === 'string' && <p class="quiet">{details.hint}</p>}
    </>
  )
}

/** The rhythm of the song, if the job has analyzed it. */
function useAnalysis(files: ResultFiles | undefined): SongRhythm | undefined {
  // Without it, the person can still start the analysis here.
  return useAnswer(
    (signal) =>
      files?.names.includes('analysis') ? files.json<AnalysisReport>('analysis', signal).then(rhythmOf) : undefined,
    [files],
  )
}

/** Title and artist by the tags of the file, else its name. */
function songOf(job: Job | undefined, upload: Upload | undefined): { song: string; artist?: string } {
  const { title, artist } = (job?.details ?? {}) as { title?: string; artist?: string }
  const name = job ? job.name : upload?.file.name
  return { song: title ?? name?.replace(/\.\w+$/, '') ?? 'Song', artist }
}

/** Whether a job has written notes as `service/notes` does. */
function hasNotes(files: ResultFiles): boolean {
  return files.names.includes('notes') && files.names.includes('midi')
}
