/** Largest single allocation in ffmpeg, in bytes. Audio needs little; a video frame takes tens of millions. */
const largestAllocation = 256 * 1024 * 1024

/**
 * Arguments that make ffmpeg decode the first sound track of one file and nothing else: the demuxer is given, so no
 * playlist, script or reference in the file can lead to another one; no protocol but files; no pictures, subtitles or
 * data; nothing read from the terminal. The output is WAV with 32-bit floats on stdout.
 *
 * @param path absolute
 */
export function ffmpegArguments(path: string, demuxer: string, maxSeconds: number): string[] {
  return [
    ['-nostdin', '-hide_banner', '-nostats', '-loglevel', 'level+info'],
    ['-max_alloc', String(largestAllocation)],
    ['-protocol_whitelist', 'file', '-format_whitelist', demuxer, '-f', demuxer],
    ['-threads', '1', '-vn', '-sn', '-dn', '-i', `file:${path}`],
    ['-map', '0:a:0', '-map_metadata', '-1', '-vn', '-sn', '-dn'],
    // One second more than allowed, so that audio that is too long is detected.
    Number.isFinite(maxSeconds) ? ['-t', String(maxSeconds + 1)] : [],
    ['-c:a', 'pcm_f32le', '-fflags', '+bitexact', '-f', 'wav', 'pipe:1'],
  ].flat()
}
