/** How long a part of the song a picture shows. */
export function ZoomButtons({ onZoom }: { onZoom(factor: number): void }) {
  return (
    <span class="zoom">
      Zoom
      <button type="button" aria-label="Zoom out" onClick={() => onZoom(0.5)}>
        −
      </button>
      <button type="button" aria-label="Zoom in" onClick={() => onZoom(2)}>
        +
      </button>
    </span>
  )
}
