import { useEffect, useRef, useState } from 'preact/hooks'
import { Button } from './button.js'
import { listen } from './listen.js'

/** A button that opens the file dialog. Files can be dropped anywhere on the page. */
export function DropZone({ onFiles }: { onFiles(files: File[]): void }) {
  const input = useRef<HTMLInputElement>(null)
  const take = useRef(onFiles)
  take.current = onFiles
  const [isOver, setOver] = useState(false)

  useEffect(() => {
    const carriesFiles = (event: DragEvent) => event.dataTransfer?.types.includes('Files') === true
    const over = (event: DragEvent) => {
      if (!carriesFiles(event)) return
      event.preventDefault()
      setOver(true)
    }
    const leave = (event: DragEvent) => event.relatedTarget === null && setOver(false)
    const drop = (event: DragEvent) => {
      if (!carriesFiles(event)) return
      event.preventDefault()
      setOver(false)
      const files = [...(event.dataTransfer?.files ?? [])]
      if (files.length > 0) take.current(files)
    }
    return listen(window, { dragover: over, dragleave: leave, drop })
  }, [])

  return (
    <div class={isOver ? 'drop over' : 'drop'}>
      <Arrow />
      <p>
        <span class="pointer">Drop songs here, or </span>
        <Button class="main" onClick={() => input.current?.click()}>
          Choose songs
        </Button>
      </p>
      <p class="quiet">MP3, WAV, FLAC, M4A, OGG and others, or a video with sound</p>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        aria-label="Songs"
        onChange={(event) => {
          const files = [...(event.currentTarget.files ?? [])]
          event.currentTarget.value = ''
          if (files.length > 0) onFiles(files)
        }}
      />
    </div>
  )
}

function Arrow() {
  return (
    <svg
      viewBox="0 0 48 48"
      width="38"
      fill="none"
      stroke="var(--accent)"
      stroke-width="2.5"
      stroke-linecap="round"
      aria-hidden="true"
    >
      <path d="M24 32V10m0 0-8 8m8-8 8 8M8 34v4a2 2 0 0 0 2 2h28a2 2 0 0 0 2-2v-4" />
    </svg>
  )
}
