import { Button } from './button.js'

/** Buttons for how much of the song a picture shows. */
export function ZoomButtons({ onZoom }: { onZoom(factor: number): void }) {
  return (
    <span class="zoom">
      Zoom
      <Button aria-label="Zoom out" onClick={() => onZoom(0.5)}>
        −
      </Button>
      <Button aria-label="Zoom in" onClick={() => onZoom(2)}>
        +
      </Button>
    </span>
  )
}
