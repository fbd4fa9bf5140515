import { Button } from '../elements/button.js'
import type { Job } from '../../client/client.js'
import type { JobCommands } from '../jobs/job-commands.js'
import { saveLink } from '../jobs/job-requests.js'
import type { ResultFiles } from '../sources/result-files.js'
import { isAudio } from '../words/stem-names.js'
import { outputWords, sizeWords } from '../words/words.js'

interface DownloadsProps {
  job: Job
  files: ResultFiles
  /** Absent for visitors who have only a link. */
  commands: JobCommands | undefined
  onError(error: unknown): void
}

/** Links to every file of a job, and to all of them as one. */
export function Downloads({ job, files, commands, onError }: DownloadsProps) {
  const audio = files.names.filter((name) => isAudio(files.storedName(name)))
  const others = files.names.filter((name) => !audio.includes(name))
  const total = files.names.reduce((sum, name) => sum + (files.bytes(name) ?? 0), 0)
  const link = (name: string) => {
    const bytes = files.bytes(name)
    return (
      <li key={name}>
        <a
          class="button"
          href={files.link(name)}
          download={files.fileName(name)}
          // The link on the page may have expired while the page was open.
          onPointerDown={() => void files.fresh(name).catch(() => undefined)}
          onDragStart={({ dataTransfer }) => dataTransfer?.setData('DownloadURL', files.draggedAs(name))}
          onClick={(event) => {
            event.preventDefault()
            files.fresh(name).then((url) => saveLink(url, files.fileName(name)), onError)
          }}
        >
          {outputWords(name)}
          <span class="quiet small">
            {files.storedName(name).split('.').at(-1)?.toUpperCase()}
            {bytes !== undefined && ` · ${sizeWords(bytes)}`}
          </span>
        </a>
      </li>
    )
  }
  const all = commands && files.names.length > 1 && (
    <li>
      <Button class="button" onClick={() => void commands.archive([job])}>
        All (ZIP)
        {total > 0 && <span class="quiet small">{sizeWords(total)}</span>}
      </Button>
    </li>
  )
  return (
    <section class="stack downloads screen" aria-labelledby="downloads-title">
      <h2 id="downloads-title">Download</h2>
      <p class="quiet pointer">In Chrome and Edge, drag a file into a folder or your audio program.</p>
      <ul class="flow">
        {(audio.length > 0 ? audio : others).map(link)}
        {all}
      </ul>
      {audio.length > 0 && others.length > 0 && (
        <details>
          <summary>Pictures and data</summary>
          <ul class="flow">{others.map(link)}</ul>
        </details>
      )}
    </section>
  )
}
