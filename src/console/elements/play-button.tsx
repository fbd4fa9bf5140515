import { Button } from './button.js'

interface PlayButtonProps {
  isPlaying: boolean
  isWaiting?: boolean
  onToggle(): void
}

export function PlayButton({ isPlaying, isWaiting, onToggle }: PlayButtonProps) {
  return (
    <Button class="play main" aria-label={isPlaying ? 'Pause' : 'Play'} aria-busy={isWaiting} onClick={onToggle}>
      <svg viewBox="0 0 24 24" width="27" fill="currentColor" aria-hidden="true">
        <path d={isPlaying ? 'M7 5h3.5v14H7zM13.5 5H17v14h-3.5z' : 'M8 5v14l11-7z'} />
      </svg>
    </Button>
  )
}
