// What the console uses of skinview3d, whose bundle sets globalThis.skinview3d.
export {};

declare global {
  namespace skinview3d {
    class SkinViewer {
      constructor(options: { canvas: HTMLCanvasElement; width: number; height: number; renderPaused: boolean });
      readonly renderer: { forceContextLoss(): void };
      readonly controls: { enableZoom: boolean; addEventListener(type: "change", listener: () => void): void };
      readonly playerWrapper: { rotation: { y: number } };
      readonly playerObject: { backEquipment: "cape" | "elytra" | null };
      animation: object | null;
      renderPaused: boolean;
      autoRotate: boolean;
      autoRotateSpeed: number;
      loadSkin(sheet: HTMLCanvasElement, options: { model: "slim" | "default" }): void;
      loadCape(sheet: HTMLCanvasElement, options: { backEquipment: "cape" | "elytra" }): void;
      setSize(width: number, height: number): void;
      render(): void;
      dispose(): void;
    }
    class IdleAnimation {}
    class WalkingAnimation {}
    class RunningAnimation {}
  }
}
