import type { RefObject } from 'preact'
import { useEffect } from 'preact/hooks'
import { listen } from './listen.js'

/** Fits the canvas's pixels to its size on the screen; drawing is in CSS pixels. */
export function canvasSize(canvas: HTMLCanvasElement): {
  context: CanvasRenderingContext2D | null
  width: number
  height: number
} {
  const { clientWidth: width, clientHeight: height } = canvas
  const scale = devicePixelRatio
  canvas.width = Math.round(width * scale)
  canvas.height = Math.round(height * scale)
  const context = canvas.getContext('2d')
  context?.scale(scale, scale)
  return { context, width, height }
}

/** Resolves a colour of the style sheet for a canvas: that of the light page or of the dark one. */
export function tokenColour(canvas: HTMLCanvasElement, token: string): string {
  canvas.style.color = `var(--${token})`
  return getComputedStyle(canvas).color
}

/** Draws now, and whenever the canvas is resized or the page changes its colours. */
export function useRedraws(
  canvas: RefObject<HTMLCanvasElement | null>,
  draw: () => void,
  causes: readonly unknown[],
): void {
  useEffect(() => {
    const observer = new ResizeObserver(draw)
    if (canvas.current) observer.observe(canvas.current)
    const unlisten = listen(matchMedia('(prefers-color-scheme: dark)'), { change: draw })
    return () => {
      observer.disconnect()
      unlisten()
    }
  }, causes)
}
